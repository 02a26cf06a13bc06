package frame

import (
	"encoding/binary"
	"time"

	"golang.org/x/net/http2"
)

// Size is the largest payload of a frame, in bytes, in both directions: the initial value of
// SETTINGS_MAX_FRAME_SIZE (RFC 9113 section 6.5.2).
const Size = 16 << 10

// CloseTimeout is how long writing the last frames of a connection may take.
const CloseTimeout = 2 * time.Second

// AppendHeader appends the header of a frame (RFC 9113 section 4.1).
func AppendHeader(b []byte, length int, kind http2.FrameType, flags http2.Flags, id uint32) []byte {
	return append(b, byte(length>>16), byte(length>>8), byte(length), byte(kind), byte(flags), byte(id>>24), byte(id>>16), byte(id>>8), byte(id))
}

// appendBlock appends a field block as a HEADERS frame and, if needed, CONTINUATION frames.
func appendBlock(b, block []byte, id uint32, flags http2.Flags) []byte {
	for kind := http2.FrameHeaders; ; kind = http2.FrameContinuation {
		part := block[:min(len(block), Size)]
		block = block[len(part):]
		if len(block) == 0 {
			flags |= http2.FlagHeadersEndHeaders // the same bit in both
		}
		b = append(AppendHeader(b, len(part), kind, flags, id), part...)
		if len(block) == 0 {
			return b
		}
		flags = 0
	}
}

// AppendSettings appends a SETTINGS frame (RFC 9113 section 6.5).
func AppendSettings(b []byte, settings ...http2.Setting) []byte {
	b = AppendHeader(b, 6*len(settings), http2.FrameSettings, 0, 0)
	for _, s := range settings {
		b = append(b, byte(s.ID>>8), byte(s.ID))
		b = binary.BigEndian.AppendUint32(b, s.Val)
	}
	return b
}

// AppendReset appends an RST_STREAM frame (RFC 9113 section 6.4).
func AppendReset(b []byte, id uint32, code http2.ErrCode) []byte {
	return binary.BigEndian.AppendUint32(AppendHeader(b, 4, http2.FrameRSTStream, 0, id), uint32(code))
}

// AppendWindowUpdate appends a WINDOW_UPDATE frame (RFC 9113 section 6.9) for n more bytes on
// a stream, or on the connection if id is 0.
func AppendWindowUpdate(b []byte, id, n uint32) []byte {
	return binary.BigEndian.AppendUint32(AppendHeader(b, 4, http2.FrameWindowUpdate, 0, id), n)
}

// AppendGoAway appends a GOAWAY frame (RFC 9113 section 6.8). Streams above last were not
// processed; why is the debug data.
func AppendGoAway(b []byte, last uint32, code http2.ErrCode, why string) []byte {
	b = AppendHeader(b, 8+len(why), http2.FrameGoAway, 0, 0)
	return append(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, last), uint32(code)), why...)
}
