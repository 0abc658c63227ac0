"""The estimate `power-cooling`: power, current, heat and racks of a site."""
