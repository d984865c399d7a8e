"""Lesson 16: one model on many devices."""
