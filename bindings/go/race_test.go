//go:build race

package aerie

const raceDetector = true
