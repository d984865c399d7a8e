"""The exercises, one file each, in a folder for each lesson."""
