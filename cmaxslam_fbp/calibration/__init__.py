"""The lens from the recording itself: when it is right, an edge lands on one place of the map wherever it was seen."""
