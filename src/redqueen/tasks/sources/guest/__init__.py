"""What runs in guests: graders of other packages, reached through checkers of ours."""
