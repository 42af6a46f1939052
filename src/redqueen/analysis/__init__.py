"""What a race is like beside its ratings: how far apart its members are, and how varied what its teachers write is."""
