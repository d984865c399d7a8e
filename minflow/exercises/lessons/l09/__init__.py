"""Lesson 09: why it can be fast."""
