"""The exercises, one file each, in the lessons where they belong."""
