"""What lies in the memory of one accelerator, and how it is spread over several."""
