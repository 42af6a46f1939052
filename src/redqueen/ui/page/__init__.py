"""Runs to look at: a live page (`redqueen watch`) and one file that can be mailed (`redqueen report`).

Both show the same views. `views` reads a run's records into plain values, `server` hands them to a browser as they
grow, `document` puts them into a file. What draws them is in `assets`, and nothing of it comes from elsewhere.
"""
