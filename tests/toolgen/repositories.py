"""Files of little repositories."""

BASE = """
class Base:
    def __init__(self):
        self._registered_updates = set()
        self.name = "base"
"""
CONTAINER = '''from base import Base


class Container(Base):
    def register_updates(self, *updates):
        """Register the given updates."""
        return None if updates else self

    @property
    def label(self):
        """Name of this container."""
        label = self.name
        return label
'''
SHAPES = '''def area(width, height):
    """Area of a rectangle."""
    total = width * height
    return total
'''
