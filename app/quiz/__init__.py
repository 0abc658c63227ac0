"""Questions: asking, grading, practising, and what an answer leads to."""
