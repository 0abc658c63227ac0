"""Tables, engine, write queue, schema, backup."""
