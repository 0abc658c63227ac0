"""The estimate `serving-capacity`: from traffic and targets to GPUs and nodes."""
