"""Who is replaced and by whom: fitness ranks, selection chooses parents, replacement who dies. `variation` makes the
weights of children."""
