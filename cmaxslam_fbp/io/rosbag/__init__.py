"""ROS bags: event arrays and event packets."""
