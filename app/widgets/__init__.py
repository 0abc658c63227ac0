"""Charts and calculator forms as HTML and SVG."""
