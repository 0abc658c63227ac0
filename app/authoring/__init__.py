"""The author's bench: problems, previews, and which item or page to mend."""
