"""The estimate `training-memory`: what training takes on each GPU and stage."""
