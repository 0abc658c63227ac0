"""What is known of a model: its layers from config.json or a name, formats, sizes."""
