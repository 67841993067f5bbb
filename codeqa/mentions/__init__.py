"""What can be mentioned behind `@`, as it is typed."""
