"""Lesson 02: downhill."""
