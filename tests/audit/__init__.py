"""`make audit`: attacks from outside, and what is known of the packages."""
