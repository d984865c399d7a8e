"""Lesson 05: eyes."""
