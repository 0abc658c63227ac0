"""The estimate `mig`: which instances fit together on one card."""
