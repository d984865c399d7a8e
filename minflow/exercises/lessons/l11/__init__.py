"""Lesson 11: without waiting."""
