"""Lesson 10: job functions."""
