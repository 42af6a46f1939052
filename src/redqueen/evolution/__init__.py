"""Who is replaced and by whom: fitness says how good, selection who breeds, replacement who dies, lineage who came of
whom. What a child's weights are is `variation`'s."""
