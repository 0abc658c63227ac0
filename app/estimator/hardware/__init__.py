"""What is known of machines: accelerators, partitions, links, switches, facilities."""
