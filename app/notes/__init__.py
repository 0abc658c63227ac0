"""Notes and bookmarks: what a learner wrote beside the sections of a page."""
