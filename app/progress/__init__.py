"""What a learner knows, from what evidence, and what to do next."""
