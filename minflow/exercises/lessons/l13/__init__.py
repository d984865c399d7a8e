"""Lesson 13: many machines."""
