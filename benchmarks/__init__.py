"""Measurements that are ratios within one run, never times."""
