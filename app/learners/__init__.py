"""Who is studying: the signed cookie, the name, other devices."""
