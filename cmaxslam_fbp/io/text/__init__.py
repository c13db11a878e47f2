"""Events as text: the ECD's layout, and CSV."""
