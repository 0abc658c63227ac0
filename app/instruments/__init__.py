"""The form and the reading of an estimate, wherever one is shown."""
