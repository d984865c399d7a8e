"""Lesson 14: your own engine."""
