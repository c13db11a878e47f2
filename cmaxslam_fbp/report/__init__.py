"""Results as pictures, files and pages."""
