"""Where queries run: embedded, or on an engine that the operator has."""
