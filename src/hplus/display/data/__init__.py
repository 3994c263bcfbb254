"""What figures show, computed once and drawn by matplotlib and by the report."""
