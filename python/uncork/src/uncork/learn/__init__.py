"""`uncork learn`: from experiments to a table that says which network gets which controller, and why."""
