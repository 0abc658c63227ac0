"""What a request passes before the app sees it, and its answer on the way out."""
