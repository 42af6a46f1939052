"""One frozen base and any number of members on it, sampled, scored and trained together."""
