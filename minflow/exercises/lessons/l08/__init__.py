"""Lesson 06: learned or remembered."""
