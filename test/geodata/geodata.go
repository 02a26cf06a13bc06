// Package geodata makes small databases of MaxMind's format, for tests.
package geodata

import (
	"bytes"
	"fmt"
	"net"
	"time"

	"github.com/maxmind/mmdbwriter"
	"github.com/maxmind/mmdbwriter/mmdbtype"
)

// Built is when the databases say that they were made.
func Built() time.Time { return time.Unix(1_700_000_000, 0) }

// Make returns a database of an edition with a record for each network. Records are made of
// strings, booleans, numbers (int is a uint32), lists and maps.
func Make(edition string, records map[string]map[string]any) ([]byte, error) {
	tree, err := mmdbwriter.New(mmdbwriter.Options{DatabaseType: edition, IncludeReservedNetworks: true, BuildEpoch: Built().Unix()})
	if err != nil {
		return nil, err
	}
	for network, record := range records {
		_, prefix, err := net.ParseCIDR(network)
		if err != nil {
			return nil, err
		}
		data, err := typed(record)
		if err == nil {
			err = tree.Insert(prefix, data)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", network, err)
		}
	}
	var out bytes.Buffer
	_, err = tree.WriteTo(&out)
	return out.Bytes(), err
}

// typed is a value as the format has it.
func typed(value any) (mmdbtype.DataType, error) {
	switch v := value.(type) {
	case string:
		return mmdbtype.String(v), nil
	case bool:
		return mmdbtype.Bool(v), nil
	case int:
		return mmdbtype.Uint32(v), nil
	case uint16:
		return mmdbtype.Uint16(v), nil
	case uint64:
		return mmdbtype.Uint64(v), nil
	case int32:
		return mmdbtype.Int32(v), nil
	case float32:
		return mmdbtype.Float32(v), nil
	case float64:
		return mmdbtype.Float64(v), nil
	case []any:
		list := mmdbtype.Slice{}
		for _, one := range v {
			entry, err := typed(one)
			if err != nil {
				return nil, err
			}
			list = append(list, entry)
		}
		return list, nil
	case map[string]any:
		fields := mmdbtype.Map{}
		for key, one := range v {
			field, err := typed(one)
			if err != nil {
				return nil, err
			}
			fields[mmdbtype.String(key)] = field
		}
		return fields, nil
	}
	return nil, fmt.Errorf("a %T has no place in a database", value)
}

// Country is a record of one, as those of GeoLite2-Country are.
func Country(code, name, continent string) map[string]any {
	return map[string]any{
		"country":   map[string]any{"iso_code": code, "geoname_id": 2921044, "names": map[string]any{"en": name, "fr": "?"}},
		"continent": map[string]any{"code": continent, "names": map[string]any{"en": "Continent of " + name}},
	}
}
