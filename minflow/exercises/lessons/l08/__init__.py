"""Lesson 08: debugging graphs."""
