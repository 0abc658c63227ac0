"""What a course holds: for each objective, in its choices, in drafts, and due."""
