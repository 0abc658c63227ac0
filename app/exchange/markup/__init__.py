"""HTML, XML and Markdown between programs: cleaned, escaped, read and written."""
