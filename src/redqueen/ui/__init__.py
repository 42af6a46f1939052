"""What people look at: the live view of a race, the page in the browser, and trackers."""
