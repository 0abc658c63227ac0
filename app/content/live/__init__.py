"""The course as it is served: its files watched, kept, put together."""
