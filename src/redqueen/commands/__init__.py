"""The command line: one file for each command, the only room that knows tyro. `index` lists them, `main` runs one."""
