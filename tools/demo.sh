#!/bin/sh
# The main job on a recording that it makes itself: simulate, look at it, run the SLAM, show errors and map.
set -e
folder=demo
rm -rf "$folder"
mkdir -p "$folder"
echo "1. Four seconds of a hand-held camera that turns in a room of boxes"
cmaxslam-fbp simulate "$folder/boxes.bag" --scene boxes --duration 4
echo
echo "2. What the recording contains"
cmaxslam-fbp info "$folder/boxes.bag"
echo
echo "3. Orientation over time and a panoramic map"
cmaxslam-fbp run "$folder/boxes.bag" --out "$folder/run"
echo
echo "The map is $folder/run/panorama.png, the trajectory $folder/run/trajectory.txt."
