"""Files as columns: tables in chunks, cells as numbers and times, polygons, maps in kilometres."""
