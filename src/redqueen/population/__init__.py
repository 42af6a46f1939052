"""Who plays whom, and how good everybody is: members, ratings, matches."""
